"""The wire between the parent and a worker: plain constants and struct formats, so that the zygote can afford to import it.

A frame is ``u32 length | u8 kind | payload`` (little endian; length counts the payload only). The parent trusts no frame: one
protocol error kills the worker. Tenant values are JSON text inside a payload; the worker never decodes JSON.
"""

from struct import Struct

HEAD = Struct("<IB")

# parent → worker
HEADER = 1  # LIMITS_WIRE: numbers only; before it the worker has seen nothing of a tenant
BUNDLE = 2  # see BUNDLE_PART
REPLY = 3  # CALL_ID + one byte ok (1) or error (0) + JSON text

# worker → parent
READY = 16  # empty: locked, warmed, waiting
ARMED = 17  # empty: limits lowered, second filter up, the tenant's bytes may come
CALL = 18  # CALL_ID + u8 length of the name + name + JSON text of the arguments
LOG = 19  # u8 level + text
DONE = 20  # JSON text of the result
DROPPED = 22  # u32 number of log lines that the worker did not send because a log limit was reached; at most once, before DONE or FAIL
FAIL = 21  # u8 length of the outcome + outcome string + JSON text {"name","message","stack","line","column","file"}

ARTEFACT = 23  # the next bytes of compiled code; only from the runtime wasm_compiler, before its DONE

LOG_PART = 24  # u8 level + text that continues the unfinished line; the LOG that ends the line holds all of it. From runtime wasm only
#: Most frames LOG_PART of an attempt: what a worker writes without ending a line is told apart from a flood.
MAX_LOG_PARTS = 1000

CALL_ID = Struct("<I")
BUNDLE_PART = Struct(
    "<II"
)  # length of name, length of source; first part is the context JSON under the name "", then the modules

#: Order of the header's numbers; a name is a field of Limits, except the last two.
HEADER_FIELDS = (
    "cpu_ms",
    "wall_ms",
    "memory_bytes",
    "source_bytes",
    "wasm_bytes",
    "input_bytes",
    "result_bytes",
    "log_bytes",
    "log_lines",
    "log_line_bytes",
    "host_calls",
    "frame_bytes",
    "json_depth",
    "fuel",  # 0: not metered
    "now_us",  # what Date.now() starts from
)
LIMITS_WIRE = Struct(f"<{len(HEADER_FIELDS)}q")

LEVELS = ("debug", "info", "warn", "error")
