"""QuickJS inside WebAssembly: the guest, the realm baked from the standard library, one attempt. It must never open a file in a worker."""
