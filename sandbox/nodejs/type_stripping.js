const { readSync, writeSync } = require("fs");
const { stripTypeScriptTypes } = require("module");
const write = (text) => { for (let left = Buffer.from(text); left.length; ) left = left.subarray(writeSync(1, left)); };
stripTypeScriptTypes("let ready: number");
writeSync(3, "R");
const parts = [];
for (let part = Buffer.alloc(0); part.at(-1) !== 10; ) {
  part = Buffer.alloc(65536);
  part = part.subarray(0, readSync(0, part));
  if (!part.length) process.abort();
  parts.push(part);
}
const answer = {};
for (const [name, text] of JSON.parse(Buffer.concat(parts).toString())) {
  try {
    answer[name] = stripTypeScriptTypes(text);
  } catch (error) {
    const text = (value, most) => String(value).slice(0, most);
    answer[""] = { name, code: text(error.code, 100), message: text(error.message, 1000), stack: text(error.stack, 8000) };
    break;
  }
}
const { user, system } = process.cpuUsage();
write(`${user + system} ${JSON.stringify(answer)}\n`);
readSync(0, Buffer.alloc(1));
