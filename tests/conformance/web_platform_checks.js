const done = [], failed = [];
const shown = (value) =>
  JSON.stringify(value, (_, inner) => {
    if (inner === undefined || inner !== inner) return String(inner);
    if (typeof inner === "bigint") return inner + "n";
    if (inner instanceof ArrayBuffer) return [...new Uint8Array(inner)];
    return ArrayBuffer.isView(inner) ? [...inner] : inner;
  });
const note = (name, got, wanted) => {
  done.push(name);
  if (got !== wanted) failed.push(name + ": " + got + ", not " + wanted);
};
const check = async (name, work, wanted = true) => {
  let got;
  try {
    got = shown(await work());
  } catch (error) {
    got = "threw " + error.name + ": " + error.message;
  }
  note(name, got, shown(wanted));
};
const throws = async (name, work, wanted) => {
  let got = "nothing";
  try {
    await work();
  } catch (error) {
    got = error.name;
  }
  note(name, got, wanted);
};
const utf8 = (text) => new TextEncoder().encode(text);
const hex = (bytes) => new Uint8Array(bytes).toHex();
const unhex = (text) => Uint8Array.fromHex(text);
