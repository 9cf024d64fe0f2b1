/* commands.h - what each command runs; the value is the exit code */
#ifndef GPUB_COMMANDS_H
#define GPUB_COMMANDS_H

struct cli;

int run_offers (struct cli *c);
int run_rent (struct cli *c);
int run_join (struct cli *c);
int run_release (struct cli *c);
int run_extend (struct cli *c);
int run_retry (struct cli *c);
int run_verify (struct cli *c);
int run_leases (struct cli *c);
int run_show (struct cli *c);
int run_explain (struct cli *c);
int run_watch (struct cli *c);
int run_logs (struct cli *c);
int run_ssh (struct cli *c);
int run_tunnel (struct cli *c);
int run_kubeconfig (struct cli *c);
int run_providers (struct cli *c);
int run_clusters (struct cli *c);
int run_orphans (struct cli *c);
int run_cost (struct cli *c);
int run_ping (struct cli *c);
int run_version (struct cli *c);
int run_completion (struct cli *c);
int run_help (struct cli *c);

#endif
