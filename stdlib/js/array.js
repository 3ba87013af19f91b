// Array.prototype.join for a length that no text can have: a RangeError, as in V8. The engine would go through the holes up to the CPU limit,
// in one step that ends without a line.
const LONGEST = 2 ** 29 - 24; // of V8's texts
const native = $.uncurry(Array.prototype.join);
const { isArray } = Array;
const Refusal = RangeError;
const { join } = {
  join(separator) {
    if (isArray(this) && this.length > LONGEST && separator !== "") throw new Refusal("Invalid string length");
    return native(this, separator);
  },
};
$.primordials.defineProperty(Array.prototype, "join", { value: join, configurable: true, writable: true, enumerable: false });
