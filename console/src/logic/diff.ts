// The lines that differ between two texts, with a few around them.
export interface Line {
  kind: "same" | "add" | "del" | "skip";
  text: string;
}

// Myers' shortest edit would do better on large changes; objects are small, and this is a table that anybody can check.
export function diff(before: string, after: string, around = 3): Line[] {
  const a = before.split("\n"),
    b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const middle = changed(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const same = (text: string): Line => ({ kind: "same", text });
  return shortened([...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)], around);
}

function changed(a: string[], b: string[]): Line[] {
  if (a.length * b.length > 4_000_000)
    return [...a.map((text): Line => ({ kind: "del", text })), ...b.map((text): Line => ({ kind: "add", text }))];
  const width = b.length + 1,
    longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] =
        a[i] === b[j]
          ? longest[(i + 1) * width + j + 1]! + 1
          : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
    }
  const lines: Line[] = [];
  let i = 0,
    j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i]! });
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!))
      lines.push({ kind: "del", text: a[i++]! });
    else lines.push({ kind: "add", text: b[j++]! });
  }
  return lines;
}

function shortened(lines: Line[], around: number): Line[] {
  const near = lines.map((_, i) =>
    lines.slice(Math.max(0, i - around), i + around + 1).some((line) => line.kind !== "same"),
  );
  const out: Line[] = [];
  let hidden = 0;
  const flush = () => {
    if (hidden) out.push({ kind: "skip", text: `… ${hidden} unchanged` });
    hidden = 0;
  };
  lines.forEach((line, i) => {
    if (near[i]) {
      flush();
      out.push(line);
    } else hidden++;
  });
  flush();
  return out;
}
