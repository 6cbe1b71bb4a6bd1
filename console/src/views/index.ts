// The views. One file each; a line here brings a view into the navigation, Search and the keyboard shortcuts.
import type { ComponentType } from "preact";
import { Access } from "./access";
import { Aggregation } from "./aggregation";
import { History } from "./history";
import { Home } from "./home";
import { ObjectView } from "./object";
import { Requests } from "./requests";
import { Resources } from "./resources";

export interface View {
  title: string;
  // Path of a 24 × 24 icon.
  icon: string;
  // g and this key open the view.
  key?: string;
  component: ComponentType;
  hidden?: boolean;
}

export const VIEWS: Record<string, View> = {
  home: { title: "Home", icon: "M4 11l8-7 8 7M6 10v10h12V10M10 20v-6h4v6", key: "h", component: Home },
  resources: { title: "Resources", icon: "", component: Resources, hidden: true },
  object: { title: "Object", icon: "", component: ObjectView, hidden: true },
  history: { title: "History", icon: "M12 3a9 9 0 1 0 .01 0M12 7v5l3.5 2", key: "t", component: History },
  requests: { title: "Requests", icon: "M3 12h4l3-8 4 16 3-8h4", key: "q", component: Requests },
  access: {
    title: "Access",
    icon: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4",
    key: "a",
    component: Access,
  },
  aggregation: {
    title: "Aggregation",
    icon: "M12 4v5M5 20v-5h14v5M12 9v6M9.5 4h5M3 20h4M17 20h4",
    key: "m",
    component: Aggregation,
  },
};
