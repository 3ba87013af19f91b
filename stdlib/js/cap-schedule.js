// schedule: later one-off runs of this script or of another one of the tenant, requested when the run has succeeded.
const { encode, line, options } = $.wire;
const { Instant } = $;

$.provide("schedule", (context, call) => {
  $.instant.calendar(context);
  const run = (what, when, given) => {
    const { script, input, key } = options(what, given, ["script", "input", "key"]);
    return call("schedule.runAt", { ...when, script, input: encode(input === undefined ? null : input), key, line: line() });
  };
  const after = (delay) => {
    if (typeof delay === "number" || typeof delay === "string") return { delay };
    const now = context.now_us === undefined ? Instant.from(new Date()) : $.instant.ofMicroseconds(context.now_us);
    return { at: $.instant.wire(now.add(delay)) };
  };
  return Object.freeze({
    runAt(at, given) {
      return run("schedule.runAt", { at: $.instant.wire(at) }, given);
    },
    runIn(delay, given) {
      return run("schedule.runIn", after(delay), given);
    },
    cancel(run, given) {
      return call("schedule.cancel", { run, script: options("schedule.cancel", given, ["script"]).script, line: line() });
    },
  });
});
