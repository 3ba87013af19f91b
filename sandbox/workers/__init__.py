"""Control of the zygote and its workers in the parent process: the launcher, the pool of warm workers, and one attempt from job to verdict.

It must never know which runtime a worker loads, nor trust a frame that a worker sends.
"""
