// Triggers the errors of errors.py by grpc-js. Reads the cases from standard input.
"use strict";
const assert = require("node:assert");
const grpc = require("@grpc/grpc-js");

const asIs = (bytes) => bytes;

function ask(it) {
  const client = new grpc.Client(it.address, grpc.credentials.createInsecure());
  const metadata = new grpc.Metadata();
  if (it.token) metadata.set("authorization", `Bearer ${it.token}`);
  const call = [`/${it.path}`, asIs, asIs, Buffer.from(it.message, "hex"), metadata];
  const options = { deadline: it.patient ? Infinity : Date.now() + 10_000 };
  return new Promise((resolve, reject) => {
    const check = (error) => {
      try {
        assert.strictEqual(error?.code, it.code, `${it.path}: ${error}`);
        assert(error.details.includes(it.says), `${it.path}: ${error.details}`);
        const details = error.metadata.get("grpc-status-details-bin")[0] ?? Buffer.alloc(0);
        assert(details.includes(it.kind ?? ""), `${it.path}: ${details}`);
        const bad = ["INVALID", "OUT_OF_RANGE"].includes(it.kind);
        assert.strictEqual(details.includes("google.rpc.BadRequest"), bad, `${it.path}: ${details}`);
        resolve();
      } catch (wrong) {
        reject(wrong);
      } finally {
        client.close();
      }
    };
    if (!it.stream) return client.makeUnaryRequest(...call, options, check);
    const stream = client.makeServerStreamRequest(...call, options);
    stream.on("data", () => reject(new Error(`${it.path}: a message`)));
    stream.on("error", check);
  });
}

async function main() {
  const errors = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
  await Promise.all(errors.map(ask));
  console.log(`${errors.length} errors: grpc-js gets code, text and kind`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
