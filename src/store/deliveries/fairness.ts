import { longestTotal } from '../../domain/delivery/retry.ts';

/** SQL of the tenant that a delivery belongs to, which its column `share` names. */
export function tenantOf(projectId: string, keyless: string): string {
  return `${projectId} || case when ${keyless} then ' keyless' else '' end`;
}

/**
 * Common table expressions that read a JSON parameter with `FreeCapacity`: `capacity`, `free_receivers` and
 * `free_tenants`.
 */
export function capacityIn(parameter: string): string {
  return `
capacity as materialized (
  select * from json_to_record(${parameter}::json) as p("event" text, "delaySeconds" double precision,
    "totalSeconds" double precision, "total" int, "bytes" int, "mails" int, "perReceiver" int, "perTenant" int, "perTenantUnknown" int, "receivers" json, "tenants" json)
), free_receivers as materialized (
  select r.* from capacity, json_to_recordset("receivers") as r(tenant text, receiver text, free int)
), free_tenants as materialized (
  select s.* from capacity, json_to_recordset("tenants") as s(tenant text, free int, "unknown" int, mails int)
)`;
}

/**
 * Common table expressions that choose among the deliveries `rows` (with `share`, `receiver` and `channel`, and what
 * `order` names) those that fit into the capacity of their receivers and tenants. They follow `capacityIn`.
 *
 * `fair` holds these with the places that they have: `place` among those of their receiver, by `order`, `tenant_place`
 * among those of their tenant, whose receivers take turns, and `channel_place`, where tenants take turns, too: first
 * those with few emails under way. What exceeds a receiver's capacity uses up no place of its tenant.
 */
export function fairOf(rows: string, order: string): string {
  return `of_receivers as (
  select d.*, row_number() over (partition by share, receiver order by ${order}) as place from ${rows} d
), of_tenants as (
  select d.*, r.receiver is null as is_unknown,
    row_number() over (partition by share order by place, ${order}) as tenant_place,
    row_number() over (partition by share, r.receiver is null order by place, ${order}) as unknown_place
  from of_receivers d cross join capacity
    left join free_receivers r on r.tenant = d.share and r.receiver = d.receiver
  where place <= coalesce(r.free, "perReceiver")
), fair as (
  select d.*,
    row_number() over (partition by channel order by coalesce(s.mails, 0) + tenant_place, place, ${order}) as channel_place
  from of_tenants d cross join capacity left join free_tenants s on s.tenant = d.share
  where tenant_place <= coalesce(s.free, "perTenant")
    and (not is_unknown or unknown_place <= coalesce(s.unknown, "perTenantUnknown"))
)`;
}

/** The part of `Capacity` that is the same for all processes with this retry schedule. */
export function timesOf(schedule: readonly number[]): Pick<Capacity, 'delaySeconds' | 'totalSeconds'> {
  return { delaySeconds: schedule[0] ?? 0, totalSeconds: longestTotal(schedule) };
}

/** For processes that attempt nothing, and for events that can wait. */
export const NO_CAPACITY: Capacity = {
  delaySeconds: 0,
  totalSeconds: 0,
  total: 0,
  bytes: 0,
  mails: 0,
  perReceiver: 0,
  perTenant: 0,
  perTenantUnknown: 0,
  receivers: [],
  tenants: [],
};

/** How many deliveries of what it stores a process can attempt at once. */
export type Capacity = FreeCapacity & {
  /** Seconds until the first attempt; if there are any, nothing is leased. */
  delaySeconds: number;
  /** The longest that the retry schedule lasts, and so for how long a delivery is postponed. */
  totalSeconds: number;
  total: number;
};

/** How many deliveries a process can attempt beside those that it has. */
export type FreeCapacity = {
  /** What their bodies may have together. */
  bytes: number;
  /** Of them, how many emails. */
  mails: number;
  /** For each receiver, and for each tenant, that is not named. */
  perReceiver: number;
  perTenant: number;
  /** For all receivers of a tenant that are not named. */
  perTenantUnknown: number;
  receivers: { tenant: string; receiver: string; free: number }[];
  /** With `mails`, how many it has under way. */
  tenants: { tenant: string; free: number; unknown: number; mails: number }[];
};
