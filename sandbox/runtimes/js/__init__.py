"""QuickJS inside WebAssembly: the guest, the baked realm with its library, and one attempt. It must never open a file in a worker."""
