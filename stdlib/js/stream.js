// The Streams standard: the npm package web-streams-polyfill, evaluated before.
const classes = globalThis.WebStreamsPolyfill;
delete globalThis.WebStreamsPolyfill;
for (const name of Object.keys(classes)) {
  $.global(name, classes[name]);
  const own = Object.getOwnPropertyDescriptors(classes[name].prototype);
  $.showGetters(classes[name], ["locked", "readable", "writable", "highWaterMark"].filter((each) => each in own)); // not the fields of the package
}
delete classes.WritableStreamDefaultController.prototype.abortReason; // of an older standard
const locked = $.uncurry(Object.getOwnPropertyDescriptor(classes.ReadableStream.prototype, "locked").get);

$.streams = {
  __proto__: null,
  isReadable(value) {
    try {
      locked(value);
      return true;
    } catch {
      return false;
    }
  },
  isLocked: locked,
  isDisturbed: (stream) => stream._disturbed,
};
