"""Where things are kept: the catalogue, the layout of the index folder, the writer's lock."""
