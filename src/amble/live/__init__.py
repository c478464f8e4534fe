"""Live training: agents as processes that pass tokens over real links, and run the same visits as the simulator."""
