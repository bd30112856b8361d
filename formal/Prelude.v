(* What every file uses: MathComp's finite sets, sums, and ordered fields, and its conventions. *)
From mathcomp Require Export all_ssreflect all_algebra.
Export Order.TTheory GRing.Theory Num.Theory.
#[export] Set Implicit Arguments.
#[export] Unset Strict Implicit.
#[export] Unset Printing Implicit Defensive.
Global Open Scope ring_scope.
