"""The model that agents agree on: its shape and scaling, its start, its file, its predictions."""
