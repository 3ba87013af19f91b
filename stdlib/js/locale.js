// Methods of ECMAScript that depend on a locale, by Intl. Without a locale, whole numbers and capital letters need no question to the host.
const { uncurry, intl, primordials: p } = $;
const { defineProperty, slice, exec } = p;
const { apply } = Reflect;
const isWhole = Number.isInteger;
const text = String;
const lower = uncurry(String.prototype.toLowerCase);
const number = uncurry(Number.prototype.valueOf);
const bigint = uncurry(BigInt.prototype.valueOf);
const time = uncurry(Date.prototype.getTime);
const arrayLike = Object.getPrototypeOf(Uint8Array.prototype);
const lengthOf = uncurry(Object.getOwnPropertyDescriptor(arrayLike, "length").get);
const join = uncurry(Array.prototype.join);

function grouped(digits) {
  if (digits[0] === "-") return "-" + grouped(slice(digits, 1));
  let out = "";
  for (let at = digits.length; at > 0; at -= 3) out = slice(digits, at > 3 ? at - 3 : 0, at) + (out === "" ? "" : ",") + out;
  return out;
}

function replace(holder, methods) {
  for (const name of Object.keys(methods)) {
    const value = methods[name];
    defineProperty(value, "length", { value: holder[name].length, configurable: true });
    defineProperty(holder, name, { value, configurable: true, writable: true, enumerable: false });
  }
}

replace(Number.prototype, {
  toLocaleString(locales, options) {
    const value = number(this);
    if (locales === undefined && options === undefined && isWhole(value) && value !== 0 && value < 1e21 && value > -1e21) return grouped(text(value));
    return intl.number(value, locales, options);
  },
});
replace(BigInt.prototype, {
  toLocaleString(locales, options) {
    const value = bigint(this);
    return locales === undefined && options === undefined ? grouped(text(value)) : intl.number(value, locales, options);
  },
});
for (const name of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"]) {
  replace(Date.prototype, {
    [name](locales, options) {
      const value = time(this);
      return value !== value ? "Invalid Date" : intl.date(name, this, locales, options);
    },
  });
}

function listed(list, length, locales, options) {
  const out = [];
  for (let index = 0; index < length; index++) {
    const each = list[index];
    p.push(out, each === undefined || each === null ? "" : `${each.toLocaleString(locales, options)}`);
  }
  return join(out, ",");
}
replace(Array.prototype, {
  toLocaleString(locales, options) {
    const list = Object(this);
    if (this === null || this === undefined) throw new TypeError("Cannot convert undefined or null to object");
    return listed(list, +list.length, locales, options);
  },
});
replace(arrayLike, {
  toLocaleString(locales, options) {
    return listed(this, lengthOf(this), locales, options);
  },
});

function textOf(value, name) {
  if (value === undefined || value === null) throw new TypeError("String.prototype." + name + " called on null or undefined");
  return `${value}`;
}
replace(String.prototype, {
  localeCompare(other, locales, options) {
    return intl.compare(textOf(this, "localeCompare"), `${other}`, locales, options);
  },
});

// The same in every locale but these; what may be a locale at all is for the host to say.
const PLAIN = /^(?!tr|az|lt|el)[a-z]{2,3}(?:-[a-z]{2})?$/;
for (const name of ["toLocaleLowerCase", "toLocaleUpperCase"]) {
  const plain = String.prototype[name];
  replace(String.prototype, {
    [name](locales) {
      const value = textOf(this, name);
      if (locales === undefined || (typeof locales === "string" && exec(PLAIN, lower(locales)) !== null)) return apply(plain, value, []);
      return intl.cased(name, value, locales);
    },
  });
}
