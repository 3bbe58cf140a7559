// The page "Answers in a browser": a portfolio as ONNX answers here, by onnxruntime-web, on one thread.
const folder = new URL("../browser/", import.meta.url);
const said = document.getElementById("guest-said");
const checked = document.getElementById("guest-checked");
const form = document.getElementById("guest");

function columnOf(ort, name, values) {
  if (name === "city") return new ort.Tensor("string", values.map((value) => value ?? ""), [values.length, 1]);
  const numbers = values.map((value) => (value === null || value === "" ? NaN : Number(value)));
  return new ort.Tensor("float32", Float32Array.from(numbers), [values.length, 1]);
}

async function start() {
  if (location.protocol === "file:") throw new Error("a browser loads a runtime from a web server only, not from a file");
  const known = await fetch(new URL("guests.json", folder));
  if (!known.ok) throw new Error("the site was built without the model: `make docs` brings it");
  const python = await known.json();
  const ort = await import(new URL("ort.wasm.bundle.min.mjs", folder)).catch(() => {
    throw new Error("the site was built without onnxruntime-web: `make docs` fetches it where npm is installed");
  });
  ort.env.wasm.numThreads = 1; // more would need headers that few servers send
  ort.env.wasm.wasmPaths = { wasm: new URL("ort-wasm-simd-threaded.wasm", folder).href };
  const session = await ort.InferenceSession.create(new URL("guests.onnx", folder).href);
  let last = Promise.resolve(); // a session answers one question after another
  const ask = (columns) => {
    const inputs = Object.entries(columns).map(([name, values]) => [name, columnOf(ort, name, values)]);
    last = last.then(() => session.run(Object.fromEntries(inputs)));
    return last.then((found) => [...found.probabilities.data]);
  };

  const found = await ask(python.columns);
  const farthest = Math.max(...python.answers.flat().map((answer, i) => Math.abs(answer - found[i])));
  checked.dataset.farthest = farthest;
  checked.textContent = `${python.answers.length} other rows: at most ${farthest.toExponential(1)} from what Python says.`;

  let asked = 0;
  async function answer() {
    const mine = ++asked;
    const columns = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, [value]]));
    const begun = performance.now();
    const probabilities = await ask(columns);
    const yes = probabilities[python.classes.indexOf("yes")];
    if (mine !== asked) return; // a later question is on its way
    said.textContent = `This guest returns with a probability of ${(100 * yes).toFixed(1)} % (${(performance.now() - begun).toFixed(1)} ms).`;
    said.dataset.yes = yes;
    document.getElementById("guest-bar").style.width = `${100 * yes}%`;
  }
  form.addEventListener("input", answer);
  form.addEventListener("submit", (event) => event.preventDefault());
  await answer();
}

start().catch((error) => {
  said.textContent = `No answer here: ${error.message}.`;
  said.dataset.failed = "";
});
