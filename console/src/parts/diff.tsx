// The difference of two texts.
import { useMemo } from "preact/hooks";
import { diff } from "../logic/diff";
import { plain } from "../logic/words";
import { Empty } from "./parts";

const MARKS = { add: "+ ", del: "− ", same: "  ", skip: "" };

export function Diff({ before, after }: { before: string; after: string }) {
  const found = useMemo(() => diff(before, after), [before, after]);
  if (before === after) return <Empty title="No changes" />;
  return (
    <section class="diff" tabIndex={0} aria-label="Changes">
      {found.map((line, i) => (
        <div key={i} class={line.kind === "skip" ? "skip-lines" : line.kind}>
          {MARKS[line.kind]}
          {plain(line.text)}
        </div>
      ))}
    </section>
  );
}
