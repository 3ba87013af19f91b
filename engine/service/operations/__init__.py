"""What of the engine can be asked over HTTP: one table, read by the server, the client and the documentation. It must never
open a socket, nor know a framework.
"""
