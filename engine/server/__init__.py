"""The HTTP API: who asks, what of it may be asked, and the engine's answer as JSON. It decides nothing that the engine decides,
and knows neither the command line nor the pages.
"""
