"""The table of host calls: name, arguments, result, grant, budgets, and whether it is an effect.

The host refuses calls and arguments that are not in the table; types, limits and the reference are made from it. A call's arguments are
one JSON object.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Argument:
    """One member of a call's argument object; ``lodger.engine.capabilities.arguments`` checks its type."""

    type: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class HostCall:
    """One host call.

    Attributes:
        name: ``capability.verb``.
        arguments: by name.
        result: its type in TypeScript.
        grant: grant that the attempt needs (:mod:`lodger.engine.core.access.grants`); ``db`` is ``sets`` or ``collections``, by the
            set that the call names.
        counts: budgets (:mod:`lodger.engine.capabilities.attempt_budgets`) that the call may use.
        effect: whether it only writes to the journal, and so does not count as a host call or query.
        apart: whether it is answered concurrently with later calls.
        computes: whether it only computes, and so does not count as a host call either.
        help: description in one sentence.
    """

    name: str
    arguments: dict[str, Argument]
    result: str
    grant: str
    counts: tuple[str, ...]
    effect: bool
    help: str
    apart: bool = False
    computes: bool = False


def _call(
    name: str,
    arguments: str,
    result: str,
    grant: str,
    counts: str,
    help_: str,
    *,
    effect: bool = False,
    apart: bool = False,
    computes: bool = False,
) -> HostCall:
    """Return a row of the table of calls; ``arguments`` and ``counts`` are lists of words, such as ``name:name at?:any``."""
    table: dict[str, Argument] = {}
    for item in arguments.split():
        label, _, kind = item.partition(":")
        table[label.removesuffix("?")] = Argument(kind, optional=label.endswith("?"))
    if effect:
        table["line"] = Argument("line", optional=True)
    return HostCall(name, table, result, grant, tuple(counts.split()), effect, help_, apart, computes)


_CALLS = (
    _call("db.find", "set:name filter?:filter order?:order limit?:limit cursor?:cursor include?:names select?:names",
          "{rows: Row[], cursor: string | null}", "db:read", "queries rows_read", "A page of rows that satisfy a filter, in order."),
    _call("db.get", "set:name id:id check?:flag include?:names", "Row | null", "db:read", "queries rows_read",
          "The row of an id, or null."),
    _call("db.count", "set:name filter?:filter", "number", "db:read", "queries", "How many rows satisfy a filter."),
    _call("db.aggregate", "set:name filter?:filter groupBy?:groups sum?:names avg?:names min?:names max?:names", "Group[]",
          "db:read", "queries rows_read", "Counts, sums, averages, minima and maxima, by group."),
    _call("db.insert", "set:name values:values", "Row", "db", "rows_written", "Adds a row.", effect=True),
    _call("db.update", "set:name id:id changes:values", "null", "db", "queries rows_written", "Changes columns of a row.",
          effect=True),
    _call("db.increment", "set:name id:id amounts:values", "null", "db", "queries rows_written",
          "Adds amounts to columns of a row, based on their values when the run is committed.", effect=True),
    _call("db.delete", "set:name id:id", "boolean", "db", "queries rows_written", "Removes a row; false when there is none.",
          effect=True),
    _call("db.insertMany", "set:name rows:rows", "Row[]", "db", "rows_written", "Adds rows, all of them or none.", effect=True),
    _call("db.updateMany", "set:name filter?:filter changes:values all?:flag", "number", "db", "queries rows_written",
          "Changes columns of all rows that satisfy a filter, of every row with `all`; returns their number.", effect=True),
    _call("db.deleteMany", "set:name filter?:filter all?:flag", "number", "db", "queries rows_written",
          "Removes all rows that satisfy a filter, every row with `all`; returns their number.", effect=True),
    _call("db.upsert", "set:name values:values on?:names", "Row", "db", "queries rows_written",
          "Changes the row that matches in its id or in the given columns, or adds one.", effect=True),
    _call("db.changes", "set:name limit?:limit from?:text line?:line", "{changes: Change[], more: boolean}", "db:read",
          "queries rows_read", "Changes of a set since this schedule's last successful run."),
    _call("kv.get", "key:key own?:flag", "Json | null", "kv:read", "queries", "The value of a key, or null."),
    _call("kv.list", "prefix?:text after?:text limit?:limit own?:flag", "{key: string, value: Json}[]", "kv:read",
          "queries rows_read", "Keys and values, ordered by key."),
    _call("kv.set", "key:key value:value ttlSeconds?:number own?:flag", "null", "kv", "rows_written",
          "Stores a value under a key.", effect=True),
    _call("kv.swap", "key:key expected:value value:value ttlSeconds?:number own?:flag", "boolean", "kv", "queries rows_written",
          "Stores a value under a key if its current value is the expected one; null means no value.", effect=True),
    _call("kv.delete", "key:key own?:flag", "null", "kv", "rows_written", "Removes a key.", effect=True),
    _call("kv.add", "key:key amount:number own?:flag", "number", "kv", "queries rows_written",
          "Adds to the number under a key, based on its value when the run is committed.", effect=True),
    _call("mail.send", "to:addresses cc?:addresses bcc?:addresses subject:text text?:text html?:text replyTo?:text senderName?:text "
          "attachments?:rows", "{messageId: string}", "mail", "mails",
          "Sends a mail when the run has succeeded.", effect=True),
    _call("events.emit", "name:text data:value", "null", "events", "events", "Emits an event to webhooks when the run has succeeded.",
          effect=True),
    _call("schedule.runAt", "script?:text at?:value delay?:value input?:value key?:text", "string", "run", "queries later_runs",
          "Requests a later run of this script or another one when the run has succeeded; returns the id of its action.", effect=True),
    _call("schedule.cancel", "run:text script?:text", "null", "run", "rows_written",
          "Cancels a waiting run that a script requested, by its id or key, when the run has succeeded.", effect=True),
    _call("functions.call", "name:name args:value line?:line", "string", "functions", "fetches fetch_bytes",
          "Calls a function of the platform; returns its result as JSON text.", apart=True),
    _call("http.fetch", "id:number method:text url:text headers:pairs body?:value redirect?:text line?:line",
          "{status, reason, url, redirected, headers, size, next, text or bytes}", "fetch", "fetches fetch_bytes",
          "Sends a request immediately; returns the response with the first part of its body.", apart=True),
    _call("http.more", "id:number from:number raw?:flag", "{next, text or bytes}", "fetch", "",
          "The next part of a response body.", apart=True, computes=True),
    _call("secrets.read", "name:name", "string", "secret", "", "The value of a secret, if its value is granted."),
    _call("crypto.aes", "decrypt:flag key:base64 iv:base64 data:base64 extra?:base64 tagBits:number", "string", "", "",
          "Encrypts or decrypts with AES-GCM."),
    _call("crypto.derive", "kind:text hash:text key:base64 salt:base64 info?:base64 iterations?:number bits:number", "string", "", "",
          "Derives bits from a key or a password, by HKDF or PBKDF2."),
    _call("crypto.key", "kind:text format:text data:base64 exponent?:base64 curve?:text", "{spki, n and e or x and y}", "", "",
          "Reads a public key."),
    _call("crypto.verify", "kind:text hash:text key:base64 curve?:text signature:base64 data:base64 saltBytes?:number", "boolean", "", "",
          "Whether a signature by ECDSA or RSA is that of the data."),
    _call("intl.ask", "kind:text method:text given:text", "string", "", "",
          "The answer of ICU to a call of `Intl` or `toLocaleString`, as JSON text.", computes=True),
    _call("limits.get", "", "{attempt, day, tenant, process}", "", "", "Limits, use and remainder of this run's budgets."),
    _call("text.decode", "label:text bytes:value final:flag", "{encoding, text, rest, valid}", "", "",
          "Text in an encoding of the Encoding standard.", computes=True),
    _call("time.zone", "name:text far:flag", "{name, primary, starts: number[], offsets: number[]} | null", "", "",
          "Changes of a time zone's offset, until 2100 or for the 400 years from 2100; null for an unknown name.", computes=True),
    _call("http.abort", "id:number", "null", "fetch", "", "Aborts a request.", apart=True),
)  # fmt: skip

CALLS: dict[str, HostCall] = {call.name: call for call in _CALLS}

EFFECTS = frozenset(call.name for call in _CALLS if call.effect)
#: Effects and calls that only compute: they do not count as host calls. Their number is limited to EFFECTS_PER_CALL times the limit of
#: host calls, refused ones included, so that a loop of them ends.
COMPUTING = frozenset(call.name for call in _CALLS if call.computes)
UNCOUNTED = EFFECTS | COMPUTING
EFFECTS_PER_CALL = 10
