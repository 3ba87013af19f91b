// Hosts of URLs (URL standard §3): IPv4 and IPv6 addresses, domains with punycode labels, opaque hosts.
const { uncurry, percent, unpercent, utf8, utf8Text, primordials: p } = $;
const { indexOf, slice, push, exec } = p;
const split = uncurry(String.prototype.split);
const join = uncurry(Array.prototype.join);
const lower = uncurry(String.prototype.toLowerCase);
const normalize = uncurry(String.prototype.normalize);
const codePoint = uncurry(String.prototype.codePointAt);
const fromCode = String.fromCharCode;
const hex = uncurry(Number.prototype.toString);
const { floor } = Math;
const FORBIDDEN = /[\0\t\n\r #/:<>?@[\\\]^|]/;
const FORBIDDEN_DOMAIN = /[\0-\x20"#%/:<>?@[\\\]^`{|}\x7f]/;

function punycode(label) {
  // RFC 3492 §6.3.
  const codes = [];
  for (let at = 0; at < label.length; at += codes[codes.length - 1] > 0xffff ? 2 : 1) push(codes, codePoint(label, at));
  let out = "";
  for (const code of codes) if (code < 128) out += fromCode(code);
  let done = out.length;
  const basic = done;
  if (basic > 0) out += "-";
  let next = 128;
  let delta = 0;
  let bias = 72;
  while (done < codes.length) {
    let lowest = 0x10ffff;
    for (const code of codes) if (code >= next && code < lowest) lowest = code;
    delta += (lowest - next) * (done + 1);
    next = lowest;
    for (const code of codes) {
      if (code < next) delta++;
      if (code !== next) continue;
      let rest = delta;
      for (let base = 36; ; base += 36) {
        const threshold = base <= bias ? 1 : base >= bias + 26 ? 26 : base - bias;
        if (rest < threshold) break;
        const digit = threshold + ((rest - threshold) % (36 - threshold));
        out += fromCode(digit < 26 ? 97 + digit : 22 + digit);
        rest = floor((rest - threshold) / (36 - threshold));
      }
      out += fromCode(rest < 26 ? 97 + rest : 22 + rest);
      let scaled = done === basic ? floor(delta / 700) : floor(delta / 2);
      scaled += floor(scaled / (done + 1));
      let steps = 0;
      for (; scaled > 455; steps += 36) scaled = floor(scaled / 35);
      bias = steps + floor((36 * scaled) / (scaled + 38));
      delta = 0;
      done++;
    }
    delta++;
    next++;
  }
  return "xn--" + out;
}

function ipv4Number(text) {
  if (text === "") return NaN;
  if (exec(/^0[xX][0-9a-fA-F]*$/, text) !== null) return text.length === 2 ? 0 : +text;
  if (exec(/^0[0-7]*$/, text) !== null) return text.length === 1 ? 0 : +("0o" + slice(text, 1));
  return exec(/^[0-9]+$/, text) !== null && text[0] !== "0" ? +text : NaN;
}

function ipv4(text) {
  // null: not an address; NaN: a broken one.
  const parts = split(text, ".");
  if (parts[parts.length - 1] === "" && parts.length > 1) parts.length -= 1;
  const last = parts[parts.length - 1];
  if (exec(/^[0-9]+$/, last) === null && ipv4Number(last) !== ipv4Number(last)) return null;
  if (parts.length > 4) return NaN;
  let value = 0;
  for (let index = 0; index < parts.length; index++) {
    const part = ipv4Number(parts[index]);
    const final = index === parts.length - 1;
    if (!(part >= 0) || part >= (final ? 256 ** (5 - parts.length) : 256)) return NaN;
    value += final ? part : part * 256 ** (3 - index);
  }
  return value;
}

function ipv6(text) {
  const halves = split(text, "::");
  if (halves.length > 2) return null;
  const words = (half) => {
    const list = [];
    if (half === "") return list;
    const parts = split(half, ":");
    for (let index = 0; index < parts.length; index++) {
      if (index === parts.length - 1 && indexOf(parts[index], ".") >= 0) {
        const found = exec(/^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/, parts[index]);
        if (found === null) return null;
        for (let byte = 1; byte < 5; byte++) if (+found[byte] > 255 || (found[byte].length > 1 && found[byte][0] === "0")) return null;
        push(list, +found[1] * 256 + +found[2]);
        push(list, +found[3] * 256 + +found[4]);
      } else {
        if (exec(/^[0-9a-fA-F]{1,4}$/, parts[index]) === null) return null;
        push(list, +("0x" + parts[index]));
      }
    }
    return list;
  };
  const left = words(halves[0]);
  const right = halves.length === 2 ? words(halves[1]) : [];
  if (left === null || right === null) return null;
  const missing = 8 - left.length - right.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  const all = [];
  for (let index = 0; index < left.length; index++) push(all, left[index]);
  for (let index = 0; index < missing; index++) push(all, 0);
  for (let index = 0; index < right.length; index++) push(all, right[index]);
  // The longest run of zeros, the first of equals, is written as "::" (RFC 5952).
  let best = -1;
  let longest = 1;
  for (let at = 0; at < 8; at++) {
    let end = at;
    while (end < 8 && all[end] === 0) end++;
    if (end - at > longest) {
      best = at;
      longest = end - at;
    }
    if (end > at) at = end;
  }
  let out = "";
  for (let at = 0; at < 8; at++) {
    if (at === best) {
      out += "::";
      at += longest - 1;
    } else out += (out === "" || out[out.length - 1] === ":" ? "" : ":") + hex(all[at], 16);
  }
  return "[" + out + "]";
}

// Returns the serialized host, or null if it is invalid.
$.parseHost = (text, special) => {
  if (text[0] === "[") return text[text.length - 1] === "]" ? ipv6(slice(text, 1, -1)) : null;
  if (!special) {
    if (exec(FORBIDDEN, text) !== null) return null;
    let out = "";
    const bytes = utf8(text);
    for (let at = 0; at < bytes.length; at++) out += bytes[at] < 0x20 || bytes[at] > 0x7e ? percent(bytes[at]) : fromCode(bytes[at]);
    return out;
  }
  let domain = lower(normalize(utf8Text(unpercent(text)), "NFKC"));
  let plain = "";
  for (let at = 0; at < domain.length; at++) if (domain[at] !== "\u00ad") plain += domain[at] === "\u3002" ? "." : domain[at];
  const labels = split(plain, ".");
  for (let index = 0; index < labels.length; index++) if (exec(/[^\0-\x7f]/, labels[index]) !== null) labels[index] = punycode(labels[index]);
  domain = join(labels, ".");
  if (domain === "" || exec(FORBIDDEN_DOMAIN, domain) !== null) return null;
  const address = ipv4(domain);
  if (address === null) return domain;
  if (address !== address) return null;
  return join([floor(address / 2 ** 24), floor(address / 65536) % 256, floor(address / 256) % 256, address % 256], ".");
};
