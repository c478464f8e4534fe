"""All agents' losses together: from rows to losses, the pooled optimum, predictions."""
