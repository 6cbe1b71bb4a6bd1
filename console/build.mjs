// Builds the page into the Python package; esbuild is all that it takes.
// Scripts and styles get names with a hash of their contents and live in assets/, which browsers cache for ever.

import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = fileURLToPath(new URL(".", import.meta.url));
const target = join(source, "../pilothouse/console/_page");
const entry = "src/shell/main.tsx"; // as index.html names it

await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
const { metafile } = await build({
  absWorkingDir: source,
  entryPoints: [entry],
  outdir: join(target, "assets"),
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  entryNames: "index-[hash]",
  chunkNames: "[name]-[hash]",
  metafile: true,
  logLevel: "warning",
});
const [script, { cssBundle: style }] = Object.entries(metafile.outputs).find(
  ([, output]) => output.entryPoint === entry,
);

const template = await readFile(join(source, "index.html"), "utf8");
const page = template
  .replace(`/${entry}`, `/assets/${basename(script)}`)
  .replace("</head>", `  <link rel="stylesheet" href="/assets/${basename(style)}" />\n  </head>`);
await cp(join(source, "public"), target, { recursive: true });
await writeFile(join(target, "index.html"), page); // last: a folder with index.html is a complete page
