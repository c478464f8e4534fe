"""Many agents on one machine: `amble up`."""
