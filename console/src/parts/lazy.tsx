// Components whose code is loaded when they are first shown.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Failure, failureOf } from "../data/failure";
import { Loading, Problem } from "./parts";

// `meanwhile` is shown until the code is there.
export function lazy<P extends object>(
  load: () => Promise<ComponentType<P>>,
  meanwhile: preact.JSX.Element | null = <Loading what="the page" />,
): (props: P) => preact.JSX.Element | null {
  let loaded: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const [, setTurn] = useState(0);
    const [failure, setFailure] = useState<Failure | null>(null);
    const read = () => {
      setFailure(null);
      load().then(
        (component) => {
          loaded = component;
          setTurn((turn) => turn + 1);
        },
        (error: unknown) => setFailure(failureOf(error)),
      );
    };
    useEffect(() => {
      if (!loaded) read();
    }, []);
    if (failure) return <Problem what="This page cannot be loaded" failure={failure} onRetry={read} />;
    const Component = loaded;
    return Component ? <Component {...props} /> : meanwhile;
  };
}
