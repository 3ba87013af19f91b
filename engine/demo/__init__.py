"""The demonstration: two shops with their data and scripts, and a screen to watch the engine. It must use only what every platform can use."""
