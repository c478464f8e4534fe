"""Tables, figures and pictures. They only read what a run holds."""
