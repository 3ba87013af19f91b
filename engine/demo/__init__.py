"""The demonstration: two shops, their data and scripts, a line for each event. It must use only the engine's public interface."""
