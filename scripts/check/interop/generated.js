// IDs above 2^53 and 2^63 through the code that other projects generate from the protocol, to a server and back.
//
// node generated.js ADDRESS FOLDER-OF-THE-GENERATED-CODE PROTO
"use strict";
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const grpc = require("@grpc/grpc-js");
const es = require("@bufbuild/protobuf");
const protobufjs = require("protobufjs");
const typescript = require("typescript");

const [address, folder, proto] = process.argv.slice(2);
const transpiled = { compilerOptions: { module: typescript.ModuleKind.CommonJS, target: typescript.ScriptTarget.ES2022 } };
require.extensions[".ts"] = (module, file) => module._compile(typescript.transpileModule(fs.readFileSync(file, "utf8"), transpiled).outputText, file);
const generated = (name) => require(path.join(folder, name));

/** Messages of google-protobuf have setters, and lists of another name. */
function built(message, fields) {
  for (const [name, value] of Object.entries(fields)) message[`set${name[0].toUpperCase()}${name.slice(1)}`](value);
  return message.serializeBinary();
}
const bySetters = (all) => (name) => ({
  write: (fields) => built(new all[name](), fields),
  read: (bytes) => Object.fromEntries(Object.entries(all[name].deserializeBinary(bytes).toObject()).map(([key, value]) => [key.replace(/List$/, ""), value])),
});
const bySchema = (all) => (name) => ({
  write: (fields) => es.toBinary(all[`${name}Schema`], es.create(all[`${name}Schema`], fields)),
  read: (bytes) => es.fromBinary(all[`${name}Schema`], bytes),
});
const byEncode = (all, from) => (name) => ({
  write: (fields) => all(name).encode(all(name)[from](fields)).finish(),
  read: (bytes) => all(name).decode(bytes),
});
const byToBinary = (all) => (name) => ({
  write: (fields) => all[name].toBinary(all[name].create(fields)),
  read: (bytes) => all[name].fromBinary(bytes),
});
const tsProto = (all) => byEncode((name) => all[name], "fromPartial");

const CLIENTS = {
  "grpc-web": bySetters(generated("grpc-web/vesta/v1/vesta_pb.js")),
  "ts-proto, useJsTypeOverride": tsProto(generated("ts-proto/vesta/v1/vesta.ts")),
  "ts-proto, forceLong=string": tsProto(generated("ts-proto-string/vesta/v1/vesta.ts")),
  "protoc-gen-es": bySchema(generated("es/vesta/v1/vesta_pb.js")),
  "protobuf-ts": byToBinary(generated("protobuf-ts/vesta/v1/vesta.ts")),
  "protobuf-ts, long_type_string": byToBinary(generated("protobuf-ts-string/vesta/v1/vesta.ts")),
  "protobufjs, static": byEncode((name) => generated("protobufjs.js").vesta.v1[name], "fromObject"),
  "protobufjs, reflection": ((root) => byEncode((name) => root.lookupType(`vesta.v1.${name}`), "fromObject"))(protobufjs.loadSync(proto)),
};
// Parts of an ID, and the ID.
const IDS = [
  [{ version: "0", type: "0", genMethod: "2", time: "94990103", seq: "0", machine: "1021" }, "2407837855670862845"],
  [{ version: "1", type: "0", genMethod: "3", time: "1073741823", seq: "1048575", machine: "1022" }, "13835058055282163710"],
  [{ version: "1", type: "1", genMethod: "3", time: "1099511627775", seq: "1023", machine: "1023" }, "18446744073709551615"],
];
// { first: 2^64 - 1, step: 2^53 + 1, count: 3 } and, packed, [2^53 + 1, 2^63 + 1].
const RUN = "09ffffffffffffffff108180808080808010" + "1803";
const MANY = "0a1001000000000020000100000000000080";

const server = new grpc.Client(address, grpc.credentials.createInsecure());
const asIs = (bytes) => Buffer.from(bytes);
const call = (method, bytes) => new Promise((resolve, reject) => {
  server.makeUnaryRequest(`/vesta.v1.IdService/${method}`, asIs, asIs, bytes, { deadline: Date.now() + 10_000 }, (error, answer) => (error ? reject(error) : resolve(answer)));
});

async function check(name, client) {
  for (const [parts, id] of IDS) {
    const made = client("MakeIdResponse").read(await call("MakeId", client("MakeIdRequest").write(parts)));
    assert.strictEqual(String(made.id), id, `${name}: MakeId`);
    const explained = client("Id").read(await call("ExpId", client("ExpIdRequest").write({ id: made.id })));
    for (const [part, value] of Object.entries(parts)) assert.strictEqual(String(explained[part]), value, `${name}: ExpId of ${id}: ${part}`);
  }
  const run = client("IdRun").read(Buffer.from(RUN, "hex"));
  assert.deepStrictEqual([run.first, run.step, run.count].map(String), ["18446744073709551615", "9007199254740993", "3"], name);
  assert.strictEqual(Buffer.from(client("IdRun").write({ first: run.first, step: run.step, count: 3 })).toString("hex"), RUN, name);
  const { ids } = client("GenIdsResponse").read(Buffer.from(MANY, "hex"));
  assert.deepStrictEqual([...ids].map(String), ["9007199254740993", "9223372036854775809"], name);
}

async function main() {
  for (const [name, client] of Object.entries(CLIENTS)) await check(name, client);
  console.log(`${Object.keys(CLIENTS).length} generated clients have IDs above 2^53 and 2^63 exactly: ${Object.keys(CLIENTS).join("; ")}`);
  server.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
