"""The model that agents train: its shape, its scaling, its initial values, its file, its predictions."""
