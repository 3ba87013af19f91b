"""The demonstration: two shops, their data and scripts, a screen. It must use only the engine's public interface."""
