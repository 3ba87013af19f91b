// events: sent to the platform's webhooks after the run has succeeded; a failed run sends none.
const { encode, line, options } = $.wire;

$.provide("events", (context, call) => {
  $.instant.calendar(context);
  return Object.freeze({
    emit(name, data, given) {
      options("events.emit", given, []);
      return call("events.emit", { name, data: encode(data === undefined ? null : data), line: line() });
    },
  });
});
