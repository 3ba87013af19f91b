// events: told to the platform's webhooks when the run has succeeded; a run that fails tells nothing.
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
