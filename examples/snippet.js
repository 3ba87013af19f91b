// A file without a default export is a script too: what it returns is the result.
const words = ["in", "time", "and", "inside", "walls"];
console.log(`${words.length} words`);
return words.join(" ");
