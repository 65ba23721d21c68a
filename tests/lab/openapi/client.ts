// Lists the clusters of a hub with a client that knows nothing but docs/openapi.json: `client.js URL TOKEN`. Its types are
// generated into schema.ts. Prints a line of JSON for each cluster.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[]; exitCode: number };

type Cluster = components["schemas"]["ClusterSummary"];

const [url = "", token = ""] = process.argv.slice(2);
const hub = createClient<paths>({ baseUrl: `${url}/api/v1`, headers: { authorization: `Bearer ${token}` } });

const clusters: Cluster[] = [];
let cursor: string | undefined;
do {
  const { data, error } = await hub.GET("/clusters", { params: { query: { limit: 2, cursor } } });
  if (!data) {
    console.error(`${error.code}: ${error.detail}`);
    process.exitCode = 1;
    break;
  }
  clusters.push(...data.items);
  cursor = data.next ?? undefined;
} while (cursor);

for (const cluster of clusters) {
  console.log(JSON.stringify({ name: cluster.name, environment: cluster.environment }));
}
