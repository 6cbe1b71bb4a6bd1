import { defineConfig } from "vitest/config";

// PILOTHOUSE_CONSOLE is an address that `pilothouse console` printed without its token, for `npm run dev`.
export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: { outDir: "../pilothouse/console/_page", emptyOutDir: true, target: "es2022", modulePreload: { polyfill: false } },
  test: { include: ["test/*.test.ts"] },
});
