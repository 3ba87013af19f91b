"""Code that runs in the launcher, the zygote and the workers. It must never import code of the parent process or of the engine."""
