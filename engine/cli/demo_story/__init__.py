"""The demonstration: two shops, their data and scripts, a screen. It must use only what every platform can use."""
