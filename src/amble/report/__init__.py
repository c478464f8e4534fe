"""Tables, figures and web pages of runs. They only read what a run holds."""
