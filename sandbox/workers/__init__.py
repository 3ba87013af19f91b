"""The parent's side of one zygote: its launcher, warm workers, and one attempt from hand-over to verdict.

It must never know which runtime's code a worker loads, nor believe a frame that a worker sends.
"""
