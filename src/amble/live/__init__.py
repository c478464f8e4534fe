"""Live training: agents are processes that pass tokens over real links. Their visits are those of the simulator."""
