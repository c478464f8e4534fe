"""`amble reproduce`: the paper's runs, claims and page."""
