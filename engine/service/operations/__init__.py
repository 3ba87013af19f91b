"""The table of operations: the verbs that HTTP offers, read by the server, the client and the documentation.

It must never open a socket, nor know a framework.
"""
