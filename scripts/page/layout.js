// ---- a layout ----

const UNITS = { 1000: "millisecond", 10000: "ten-millis", 1000000: "second" };

function showLayout(asked) {
  const epoch = Date.parse($("epoch").value);
  const widths = ["b-time", "b-seq", "b-machine"].map((id) => $(id).value);
  const it = asked ?? ask("layout", ...widths, $("unit").value, epoch);
  $("layout-error").textContent = it.error ? said(it.error) : "";
  $("designed").hidden = Boolean(it.error);
  if (asked && !it.error) {
    for (const field of ["time", "seq", "machine"]) $(`b-${field}`).value = it[field];
    $("unit").value = it.micros;
  }
  for (const field of ["time", "seq", "machine"]) $(`o-${field}`).textContent = $(`b-${field}`).value;
  if (it.error) return;
  const years = few((it.ends - epoch) / 31556952000);
  $("designed-is").textContent = t("result", {
    bits: it.total, years, end: day(it.ends), machines: grouped(it.machines), rate: grouped(it.perSecond),
  });
  const warnings = [[it.total > 63, "over63"], [it.total > 53, "over53"], [it.machine > 0, "shards"], [it.ends < Date.now(), "ended"]];
  $("warnings").replaceChildren(...warnings.filter(([is]) => is).map(([, key]) => el("li", { text: t(key, { k: it.machine }) })));
  const numbers = { version_bits: 0, type_bits: 0, gen_method_bits: 0, time_bits: it.time, seq_bits: it.seq, machine_bits: it.machine };
  const lines = Object.entries(numbers).map(([name, value]) => `${name} = ${value}`);
  const shards = it.machine > 0
    ? `id % 2^k is the same for all IDs of a machine ID up to k = ${it.machine}: use a hash or an odd n`
    : "id % n spreads the IDs of a machine ID as far as their sequence numbers do";
  $("toml").textContent = ["[layout.custom]", ...lines, `order = "time-seq-machine"`, `unit = "${UNITS[it.micros]}"`, `epoch = ${epoch}`, `# ${shards}`].join("\n") + "\n";
}
function showDesign() {
  const needs = ["n-years", "n-machines", "n-rate"].map((id) => $(id).value);
  showLayout(ask("design", ...needs, Date.parse($("epoch").value)));
}
function startLayout() {
  $("epoch").value = `${new Date().getUTCFullYear()}-01-01`;
  for (const id of ["b-time", "b-seq", "b-machine", "unit", "epoch"]) $(id).addEventListener("input", () => showLayout());
  $("needs").addEventListener("submit", (event) => { event.preventDefault(); showDesign(); });
  $("copy-toml").addEventListener("click", (event) => copy($("toml").textContent, event.target));
}
