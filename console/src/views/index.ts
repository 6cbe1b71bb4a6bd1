// The views. One file each; a line here brings it into the navigation.
import type { ComponentType } from "preact";
import { Access } from "./access";
import { Aggregation } from "./aggregation";
import { ObjectView } from "./object";
import { Requests } from "./requests";
import { Resources } from "./resources";
import { Time } from "./time";

export interface View { title: string; icon: string; key?: string; component: ComponentType; hidden?: boolean }

export const VIEWS: Record<string, View> = {
  resources: { title: "Resources", icon: "M4 5h16M4 12h16M4 19h16", key: "r", component: Resources },
  object: { title: "Object", icon: "", component: ObjectView, hidden: true },
  time: { title: "Time", icon: "M12 3a9 9 0 1 0 .01 0M12 7v5l3.5 2", key: "t", component: Time },
  aggregation: { title: "Aggregation", icon: "M12 4v5M5 20v-5h14v5M12 9v6M9.5 4h5M3 20h4M17 20h4", key: "m", component: Aggregation },
  requests: { title: "Requests", icon: "M3 12h4l3-8 4 16 3-8h4", key: "q", component: Requests },
  access: { title: "Access", icon: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4", key: "a", component: Access },
};
