// A loop whose end never comes: the CPU limit ends it, and nobody else notices.
export default async function () {
  let tries = 0;
  console.log("looking for an even number that is odd");
  while (true) {
    tries += 2;
    if (tries % 2 === 1) return { found: tries };
  }
}
