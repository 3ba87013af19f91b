"""Wire format between the parent and a worker: constants and struct formats only, so that the zygote can import it cheaply.

A frame is ``u32 length | u8 kind | payload`` (little endian; length counts the payload only). The parent trusts no frame: the first
protocol error kills the worker. Tenant values are JSON text inside a payload; the worker never decodes JSON.
"""

from struct import Struct

HEAD = Struct("<IB")

# parent → worker
HEADER = 1  # LIMITS_WIRE: numbers only; the first bytes that a worker reads
BUNDLE = 2  # see BUNDLE_PART; after an IMAGE only the context, because the file has the modules
REPLY = 3  # CALL_ID + one byte ok (1) or error (0) + JSON text
IMAGE = 4  # after a HEADER that says image: IMAGE_HEAD + a RUN for each run of pages, or CODE; the first byte carries the file's descriptor
COMPILE = 5  # in place of BUNDLE, with the same payload: compile the modules and send what it made of the memory (runtime quickjs only)

# worker → parent
READY = 16  # empty: the first filter is installed, the worker is warm and waits
ARMED = 17  # empty: limits are lowered, the second filter is installed, the tenant's bytes may be read
CALL = 18  # CALL_ID + u8 length of the name + name + JSON text of the arguments
LOG = 19  # u8 level + text
DONE = 20  # JSON text of the result
DROPPED = 22  # u32 number of log lines that the worker did not send because a log limit was reached; at most once, before DONE or FAIL
FAIL = 21  # u8 length of the outcome + outcome string + JSON text {"name","message","stack","line","column","file"}

ARTEFACT = 23  # the next bytes of compiled code or of an image; only after COMPILE or from the runtime wasm_compiler, before DONE

LOG_PART = 24  # u8 level + text that continues an unfinished line; the LOG frame that ends the line holds all of it. Runtime wasm only
#: Maximum number of LOG_PART frames of an attempt.
MAX_LOG_PARTS = 1000

#: Entries of TRACE_ENTRY, see :mod:`lodger.sandbox.runtimes.timeline`. From a worker: what its script saw of the clock since the last
#: such frame. To a worker, after the bundle, if the header says replays: what its script will see.
TRACE = 25
#: Kind; number of reads of the clock that returned the previous value; milliseconds since the start from then on.
TRACE_ENTRY = Struct("<BII")
CHANGE, RANG, END, GOT = range(4)  # the clock changed, a timer rang, the attempt ended, an answer came before a timer
#: Maximum of all traces of an attempt: a clock that is read without pause for 30 s.
MAX_TRACE_BYTES = 32_768 * TRACE_ENTRY.size

CALL_ID = Struct("<I")
#: Of an image: number of runs, size of the guest's memory in pages, bytes of the bundle that it was made of, facts about the entry
#: (Modules.facts), the first of which is its way.
IMAGE_HEAD = Struct("<8I")
#: Of a module: bytes of its compiled code.
CODE = Struct("<Q")
#: First page of a run and its number of pages. The file holds the bundle up to a whole page, and the pages of all runs in this order.
RUN = Struct("<II")
MAX_RUNS = 4096
PAGE = 4096
#: Name of the part of a bundle that is evaluated before the script's modules, in place of the runtime's own.
BEGIN = "lodger:begin"
#: Name of a part whose text imports the packages of npm that the modules use. They are evaluated before the author's modules, and so may be
#: evaluated when an image is made: nothing that they do depends on the attempt.
PACKAGES = "lodger:packages"
BUNDLE_PART = Struct(
    "<II"
)  # lengths of name and source; the first part is the context JSON under the name "", then the modules

#: Seed of all randomness of an attempt, 256 bits; all zero for the kernel's.
SEED_FIELDS = ("seed_0", "seed_1", "seed_2", "seed_3")
SEED = Struct("<4q")

#: The header's numbers in order; those after json_depth are not fields of Limits.
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
    "now_us",  # initial value of Date.now()
    *SEED_FIELDS,
    "replays",  # 1 if a TRACE frame follows the bundle
    "image",  # 1 if an IMAGE frame follows this one
)
LIMITS_WIRE = Struct(f"<{len(HEADER_FIELDS)}q")

LEVELS = ("debug", "info", "warn", "error")
