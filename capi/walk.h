// The statements of a module in the order of its text.
#pragma once

#include <functional>

#include "ir/module.h"

namespace apl::capi {

// Every statement, each before those inside of it, with the number of bodies around it, until `visit` says false.
void walk(const Module& module, const std::function<bool(const Function&, const Stm&, unsigned)>& visit);

}  // namespace apl::capi
