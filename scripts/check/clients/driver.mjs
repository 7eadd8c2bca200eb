// Runs the commands of its input with the Node client: see run.py.
import { AsyncLocalStorage } from "node:async_hooks";
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { decode, encode, VestaClient, VestaError } = await import(pathToFileURL(process.argv[2]));
const trace = new AsyncLocalStorage();
let client, another, begun;

/** A token among them has no effect. */
function headers() {
  const traceparent = trace.getStore();
  return traceparent ? { traceparent, Authorization: "Bearer other" } : {};
}

const say = (line) => process.stdout.write(`${line}\n`);

async function guarded(work) {
  try {
    return `ok ${(await work()) ?? ""}`;
  } catch (error) {
    if (!(error instanceof VestaError)) return `refused ${error.message}`;
    const { kind, status, retry, retryAfter, server, message } = error;
    return `error ${kind || "-"} ${status ?? 0} ${Number(retry)} ${Math.round(retryAfter)} ${server ?? "-"} ${message}`;
  }
}

async function taken(count) {
  const ids = [];
  for (let i = 0; i < count; i++) ids.push(await client.next());
  return ids;
}

/** The ID of a client of its own. */
async function used() {
  const it = another();
  const id = await it.next();
  it.close();
  return id;
}

const commands = {
  new(_, { servers, token, ...numbers }) {
    const names = { batch: "batch", max_wait: "maxWait", max_age: "maxAge" };
    const options = Object.entries(numbers).filter(([name]) => name in names);
    another = () => new VestaClient({ servers: servers.split(","), token, headers, ...Object.fromEntries(options.map(([name, value]) => [names[name], Number(value)])) });
    client = another();
    return JSON.stringify(client);
  },
  take: async ([count]) => (await taken(Number(count))).join(" "),
  many: async ([count]) => (await client.nextMany(Number(count))).join(" "),
  async explain([id]) {
    const it = await client.explain(id);
    return [it.time, it.seq, it.machine, it.genMethod, it.type, it.version].join(" ");
  },
  make: (_, parts) => client.make(parts),
  encode: (_, { id, format }) => encode(BigInt(id), format),
  decode: (_, { text, format }) => decode(text, format),
  traced: ([traceparent, command, ...words]) => trace.run(traceparent, () => commands[command](words, {})),
  trans: async ([time]) => (await client.transTime(time)).getTime(),
  begin() {
    begun = guarded(() => client.next());
  },
  close: () => client.close(),
  short: async ([count]) => (await Promise.all(Array.from({ length: Number(count) }, used))).join(" "),
  async closed([count]) {
    const ids = [];
    while (ids.length < count) ids.push(await used());
    return ids.join(" ");
  },
  async run([threads, count, path]) {
    const lots = Array.from({ length: Number(threads) }, () => []);
    await Promise.all(lots.map(async (ids, nth) => {
      while (ids.length < count / threads) {
        ids.push(await client.next());
        if (nth === 0 && ids.length % 5000 === 0) {
          say(`at ${ids.length}`);
          await new Promise(setImmediate);
        }
      }
    }));
    writeFileSync(path, lots.flat().map((id) => `${id}\n`).join(""));
  },
  async bench([seconds]) {
    await client.next();
    const start = performance.now();
    let n = 0;
    for (; performance.now() - start < 1000 * seconds; n += 1000) {
      for (let i = 0; i < 1000; i++) await client.next();
      // Lets a refill go on, as in a program that awaits something else.
      await new Promise(setImmediate);
    }
    return `${n} ${Math.round(1000 * (performance.now() - start))}`;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [command, ...words] = line.split(" ");
  const pairs = Object.fromEntries(words.filter((word) => word.includes("=")).map((word) => word.split(/=(.*)/s)));
  say(command === "end" ? await begun : await guarded(() => commands[command](words, pairs)));
}
