// The Streams standard: the npm package web-streams-polyfill, evaluated before.
const { exec } = $.primordials;
const Decoder = TextDecoder;
const Encoder = TextEncoder;
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

// Streams of the Encoding standard.
class Coding {
  #pair;
  constructor(step, end) {
    const sent = (controller, chunk) => chunk.length > 0 && controller.enqueue(chunk);
    this.#pair = new classes.TransformStream({ transform: (chunk, controller) => sent(controller, step(chunk)), flush: (controller) => sent(controller, end()) });
  }
  get readable() {
    return this.#pair.readable;
  }
  get writable() {
    return this.#pair.writable;
  }
}
class TextDecoderStream extends Coding {
  #decoder;
  constructor(label, options) {
    const decoder = new Decoder(label, options);
    super((chunk) => decoder.decode(chunk, { stream: true }), () => decoder.decode());
    this.#decoder = decoder;
  }
  get encoding() {
    return this.#decoder.encoding;
  }
  get fatal() {
    return this.#decoder.fatal;
  }
  get ignoreBOM() {
    return this.#decoder.ignoreBOM;
  }
}
class TextEncoderStream extends Coding {
  constructor() {
    const encoder = new Encoder();
    let half = ""; // of a pair of surrogates
    super(
      (chunk) => {
        const text = half + chunk;
        half = exec(/[\ud800-\udbff]$/, text)?.[0] ?? "";
        return encoder.encode($.primordials.slice(text, 0, text.length - half.length));
      },
      () => encoder.encode(half),
    );
  }
  get encoding() {
    return "utf-8";
  }
}
$.global("TextDecoderStream", TextDecoderStream);
$.global("TextEncoderStream", TextEncoderStream);
