"""The code inside the zygote and the workers. It must never import the parent side or anything of the engine."""
